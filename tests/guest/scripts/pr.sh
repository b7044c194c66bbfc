#!/bin/sh
# SPDX-License-Identifier: MIT
# Persistent reservations between two initiators, or with -e SAME=1 between two
# sessions of one, which differ in their initiator session IDs only. (LIO does
# not tell such sessions apart.)
#   run-guest scripts/pr.sh PORT [PORT]
set -eu
# shellcheck source=tests/guest/guest/guest.sh
. /lib/guest.sh

start_iscsid
TARGET=${TARGET:-$(first_target "$PORTAL1")}
login "$TARGET" "$PORTAL1"
if [ -z "${SAME:-}" ]; then
	new_iface other iqn.2000-01.test.guest:other
	export IFACE=other
fi
login "$TARGET" "$PORTAL2"
a=$(disk "$TARGET" "$PORTAL1")
b=$(disk "$TARGET" "$PORTAL2")
pr() { echo "# sg_persist $*"; sg_persist --no-inquiry "$@"; }
# Leave nothing behind, however the script ends, and start from nothing.
reset() {
	sg_persist --no-inquiry --out --register-ignore --param-sark=0xc "$a" &&
		sg_persist --no-inquiry --out --clear --param-rk=0xc "$a"
}
trap 'reset >/dev/null' EXIT
reset
iscsiadm -m session -P 1 | grep -E 'Current Portal|Initiatorname'
may_write() { dd if=/dev/zero of="$1" bs=4k count=1 oflag=direct 2>/dev/null; }

say "capabilities"
pr --in --report-capabilities "$a"

say "register both"
pr --out --register --param-sark=0xa "$a"
pr --out --register --param-sark=0xb "$b"
pr --in --read-keys "$a"

say "reserve: write exclusive, registrants only; both may write"
pr --out --reserve --param-rk=0xa --prout-type=5 "$a"
pr --in --read-reservation "$b"
may_write "$a" || die "the holder may not write"
may_write "$b" || die "a registrant may not write"

say "unregister b: it may no longer write"
pr --out --register --param-rk=0xb --param-sark=0 "$b"
! may_write "$b" || die "b writes past a reservation"
may_write "$a" || die "the holder may not write"

say "b registers again, preempts a and becomes the holder"
pr --out --register --param-sark=0xb "$b"
pr --out --preempt --param-rk=0xb --param-sark=0xa --prout-type=5 "$b"
pr --in --read-reservation "$b"
pr --in --read-full-status "$b" || echo "(not supported by this target)"
! may_write "$a" || die "a writes after it was preempted"

say "release and clear"
pr --out --release --param-rk=0xb --prout-type=5 "$b"
pr --out --clear --param-rk=0xb "$b"
pr --in --read-keys "$b"
pr --in --read-keys "$b" | grep -q -i "no registered reservation keys" || die "keys are left"
