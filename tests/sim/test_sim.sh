#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The simulator finds nothing in the code as it is, and every rule that is switched off.
# timeout: 3600
# subtests: yes
set -u
cd "$(dirname "$0")/../.." || exit 2
T=${TMPDIR:-/tmp}
sim=${YOKE_SIM:-$PWD/build/sim}/tests/simulate
failed=0

result() { # STATUS NAME: the output of a failure is shown
	if [ "$1" = 0 ]; then
		echo "ok $2"
		return
	fi
	cat "$T/out"
	echo "not ok $2"
	failed=1
}

if [ "${YOKE_FULL:-0}" = 1 ]; then
	"$sim" --coverage --seconds 3000 1 10000 >"$T/out" 2>&1
	result $? "ten thousand stories break no promise and cover every fault in every state"
else
	"$sim" --seconds 20 1 100 >"$T/out" 2>&1
	result $? "stories break no promise"
fi

"$sim" --level 5 --seconds 60 1 12 >"$T/out" 2>&1
result $? "stories of level 5 break no promise"

for level in 0 1 5 10; do
	"$sim" --level $level --trace 7 >"$T/one" 2>&1 && "$sim" --level $level --trace 7 >"$T/two" 2>&1 &&
		cmp "$T/one" "$T/two" >"$T/out" 2>&1
	result $? "a seed of level $level tells the same story in another process"
done

"$sim" --canary doubtful-read --shrink 10 1 50 >"$T/out" 2>&1 &&
	grep -q '^told again: the same' "$T/out" &&
	awk '/steps are enough/ { short = $1 * 4 < $4 } END { exit !short }' "$T/out"
result $? "a story that breaks repeats exactly and gets shorter"

# Where a rule is looked for: in the arrays that it is for, where others would take too long.
level_of() {
	case $1 in
	write-hole | log-durable | log-reuse | incarnation | intent-order | torn) echo 5 ;;
	ack-before-label) echo 1 ;;
	*) echo any ;;
	esac
}

"$sim" --canaries | while read -r name text; do
	"$sim" --level "$(level_of "$name")" --canary "$name" --shrink 0 --seconds 60 1 2000 >"$T/out" 2>&1
	result $? "the simulator finds $name: $text"
done | tee "$T/canaries"
! grep -q '^not ok' "$T/canaries" || failed=1
exit $failed
