#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A sweep of half a minute over a yoked of its own; leaves report.html here (`make bench`).
# Usage: conf/bench.sh [OPTIONS of yoke-bench]
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=${YOKE_BUILD:-$top/build/release}
iqn=iqn.2026-11.org.yoke:bench
dir=$(mktemp -d "${TMPDIR:-/tmp}/yoke-bench.XXXX")
yoked=
stop() {
	[ -z "$yoked" ] || { kill "$yoked" && wait "$yoked"; } 2>/dev/null || true
	rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT TERM

# Two ports that nobody has.
read -r left right < <(python3 -c '
import socket
s = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(x.getsockname()[1] for x in s))')
mkdir "$dir/state"
sed -e "s|@dir@|$dir|; s|@left@|$left|; s|@right@|$right|" "$top/conf/bench.conf" >"$dir/yoke.conf"
"$build/yoked" -c "$dir/yoke.conf" >"$dir/log" 2>&1 &
yoked=$!
for ((i = 0; i < 200; i++)); do
	"$build/yokectl" -s "$dir/yoked.sock" status >/dev/null 2>&1 && break
	kill -0 "$yoked" 2>/dev/null || break
	sleep 0.05
done
"$build/yokectl" -s "$dir/yoked.sock" status >/dev/null || { cat "$dir/log"; exit 1; }

# What is short is short: the numbers show how it works, not how fast the machine is.
"$build/yoke-bench" --profile sweep --bs 4K,64K --qd 1,8,32 --sessions 1,2 --time 2s --warmup 200ms \
	--cross-check "$dir/yoked.sock" --report report.html "$@" \
	"iscsi://127.0.0.1:$left/$iqn/0" "iscsi://127.0.0.1:$right/$iqn/0"
echo "report.html"
