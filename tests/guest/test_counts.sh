#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 900
# fio in the guest and yoked count the same commands: of the session, the LUN and its backing.
# shellcheck source=tests/guest/common.sh
. "$(dirname "$0")/common.sh"

start_target 64M
counter=$(free_port)

# Answers each connection by a line of yoked's counters, and closes it when the line is written.
python3 - "$counter" "$SOCK" "$GUEST_TARGET" >"$T/counts" 2>"$T/counter" <<'EOF' &
import json, socket, sys

port, control, target = int(sys.argv[1]), *sys.argv[2:]


def counts():
    with socket.socket(socket.AF_UNIX) as rpc:
        rpc.connect(control)
        rpc.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "traffic.show", "params": {
            "target": target, "luns": ["0"]}}).encode() + b"\n")
        result = json.loads(rpc.makefile().readline())["result"]
    lun = result["luns"][0]
    return [row[key] for row in (result["sessions"], lun["unit"], lun["device"])
            for key in ("read_ops", "write_ops")]


with socket.create_server(("127.0.0.1", port)) as server:
    while True:
        peer, _ = server.accept()
        print(*counts(), flush=True)
        peer.close()
EOF
counter_pid=$!
trap 'rc=$?; set +e; kill $counter_pid 2>/dev/null; (exit $rc); cleanup' EXIT

run_guest counts.sh -e COUNTER="$counter"
kill $counter_pid
wait $counter_pid 2>/dev/null || true
expect "looks at the counters" 6 "$(wc -l <"$T/counts")"

# grown N: what the Nth load added to reads and writes of session, LUN and backing.
grown() {
	awk -v n="$1" 'NR == 2 * n - 1 { split($0, a) }
		NR == 2 * n { print $1 - a[1], $2 - a[2], $3 - a[3], $4 - a[4], $5 - a[5], $6 - a[6] }' \
		"$T/counts"
}
said() { sed -n "s/^fio $1 //p" "$T/out"; }

expect "fio's reads" "2048 0" "$(said randread)"
expect "fio's writes" "0 512" "$(said randwrite)"
n=0
for load in randread randwrite randrw; do
	n=$((n + 1))
	fio=$(said "$load")
	expect "$load: session, LUN and backing" "$fio $fio $fio" "$(grown $n)"
done
read -r reads writes <<<"$(said randrw)"
[ "$reads" -gt 0 ] && [ "$writes" -gt 0 ] || fail "randrw did $reads reads and $writes writes"
expect "fio's mix" 2048 $((reads + writes))
kernel_is_quiet
no_session_is_left
