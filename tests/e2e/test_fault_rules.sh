#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# subtests: yes
# Fault rules as an administrator writes them: what would not do what it says is refused with a
# remedy and leaves no rule; what is taken is listed as it was meant.
. "$(dirname "$0")/../functions.sh"

cat >"$T/yoke.conf" <<EOF
node "e2e" {
  state_dir = "$T/state"
  control   = "$T/yoked.sock"
  faults    = true
}
backing "disk" { driver = "ram"  size = "1M" }
EOF
start_yoked "$T/yoke.conf"

refused() { # WANTED ARGUMENT...
	local wanted="yokectl: fault: $1" said
	shift
	if said=$(ctl fault add "$@" 2>&1); then
		echo "not ok $*: taken"
	elif [ "$said" != "$wanted" ]; then
		echo "not ok $*: $said"
	else
		echo "ok $*"
	fi
}
refused 'delay: no time. Add --delay TIME' disk delay
refused '--delay is for kind delay. Leave it out' disk error --delay 1s
refused '--delay is for kind delay. Leave it out' disk stuck --delay 1s
refused '--torn is for kind torn. Leave it out' disk error --torn 4K
refused '--error is for kind error. Leave it out' disk stuck --error EIO
refused 'torn: only writes can tear. Write --op write, or no --op' disk torn --op any
refused 'ENOSPC: not what each of its requests can end in. Name another --op' \
	disk error --error ENOSPC
refused 'no backing "dsk". See yokectl backing list' dsk error
expect "rules that are left" "" "$(ctl fault list --no-header)"

ctl fault add disk torn --torn 512 >"$T/out"
ctl fault add disk delay --delay 20ms --op read --count 2 >>"$T/out"
ctl fault add disk error --error ENOSPC --op write --offset 64K --length 4K >>"$T/out"
expect "what was said" $'fault 1 added\nfault 2 added\nfault 3 added' "$(<"$T/out")"
expect "the list" '1 torn write 0 0 0 0
2 delay read 2 20 0 0
3 error write 0 0 65536 4096' \
	"$(ctl fault list --no-header --bytes -o id,kind,op,left,delay-ms,offset,length | tr -s ' ' |
		sed 's/^ //')"
echo "ok what_is_taken_is_listed"
stop_yoked
