#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# subtests: yes
# A start that cannot be: one line of object, cause and remedy, exit status 1, nothing left behind.
. "$(dirname "$0")/../functions.sh"

bad=0
port=$(free_port)
conf() { # BACKING [PORTAL ADDRESS]
	cat <<-CONF
	node "e2e" {
  number = 1
  state_dir = "$T/state"
  control = "$T/yoked.sock"
}
	portal "left" { listen = { "${2:-127.0.0.1:$port}" }  group = 1 }
	backing "disk" { $1 }
	target "iqn.2026-11.org.yoke:e2e" {
	  portals = { "left" }  allow = { "*" }
	  lun "0" { backing = "disk" }
	}
	CONF
}

# refused NAME PATTERN: yoked -c $T/yoke.conf says one line that matches, and exits with 1.
refused() {
	local rc=0 why=
	timeout 20 "$YOKE_BUILD/yoked" -c "$T/yoke.conf" >"$T/out" 2>&1 </dev/null || rc=$?
	grep '^yoked: ' "$T/out" >"$T/line" || true
	[ $rc = 1 ] || why="exit status $rc"
	[ "$(wc -l <"$T/line")" = 1 ] || why="not one line"
	grep -qE "$2" "$T/line" || why="another line"
	[ ! -e "$T/yoked.sock" ] || why="a control socket is left"
	if [ -z "$why" ]; then
		echo "ok $1"
	else
		bad=1
		echo "not ok $1: $why: $(cat "$T/out")"
	fi
}

file() { conf "driver = \"file\"  path = \"$1\"${2:+  $2}" >"$T/yoke.conf"; }

file "$T/none.img"
refused missing_file 'yoke.conf:[0-9]+: backing "disk": .*none.img: .*\. [A-Z]'
mkdir "$T/folder"
file "$T/folder"
refused folder_as_file 'backing "disk": .*folder'
truncate -s 1000 "$T/odd.img"
file "$T/odd.img"
refused odd_size 'backing "disk": .*odd.img.*512'
truncate -s 0 "$T/empty.img"
file "$T/empty.img"
refused empty_file 'backing "disk": .*empty.img'
truncate -s 1M "$T/held.img"
file "$T/held.img"
exec 8<>"$T/held.img"
flock 8
refused file_held_by_another 'backing "disk": .*held.img'
exec 8>&-
conf 'driver = "ram"  size = "1000000T"' >"$T/yoke.conf"
refused memory_nobody_has 'backing "disk"'
conf 'driver = "ram"  size = "1M"' >"$T/yoke.conf"
printf 'portal "left" {\n' >>"$T/yoke.conf"
refused cut_off_file 'yoke.conf:[0-9]+: '
rm "$T/yoke.conf"
refused missing_configuration 'yoke.conf: .*\.'
mkdir "$T/yoke.conf"
refused folder_as_configuration 'yoke.conf'
rmdir "$T/yoke.conf"
touch "$T/state-file"
conf 'driver = "ram"  size = "1M"' | sed "s|$T/state|$T/state-file|" >"$T/yoke.conf"
refused state_dir_is_a_file 'state_dir: .*state-file'
conf 'driver = "ram"  size = "1M"' "192.0.2.77:$port" >"$T/yoke.conf"
refused address_not_here 'portal "left": 192.0.2.77:'

# The port is taken by a program that has a name.
conf 'driver = "ram"  size = "1M"' >"$T/yoke.conf"
python3 -c "
import socket, time
s = socket.create_server(('127.0.0.1', $port))
print('up', flush=True)
time.sleep(60)" >"$T/holder" &
holder=$!
wait_for 10 grep -q up "$T/holder"
refused port_in_use "portal \"left\": 127.0.0.1:$port in use by python3[^,]*, pid [0-9]+. Stop it"
kill $holder
wait $holder 2>/dev/null || true

# And after all that it starts.
start_yoked "$T/yoke.conf"
# A second one with the same state directory, then with the same control socket.
sed "s|$port|$(free_port)|" "$T/yoke.conf" >"$T/second.conf"
mv "$T/yoke.conf" "$T/first.conf"
mv "$T/second.conf" "$T/yoke.conf"
second_refused() {
	local rc=0
	timeout 20 "$YOKE_BUILD/yoked" -c "$T/yoke.conf" >"$T/out" 2>&1 </dev/null || rc=$?
	[ $rc = 1 ] && grep -qE "$2" "$T/out" && ctl status >/dev/null && echo "ok $1" && return
	bad=1
	echo "not ok $1: $rc $(cat "$T/out")"
}
second_refused state_dir_of_another 'state_dir: .*held by another yoked'
sed -i "s|$T/state|$T/state2|" "$T/yoke.conf"
second_refused control_socket_of_another 'yoked.sock'
exit $bad
