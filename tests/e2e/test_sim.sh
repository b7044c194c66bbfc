#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 600
# Life stories of arrays from seeds (make sim has more of them).
. "$(dirname "$0")/../functions.sh"

simulate="$(dirname "$YOKE_BUILD")/sim/tests/simulate"
seeds=12
[ "${YOKE_FULL:-}" = 1 ] && seeds=3000

for level in 0 1 5 10; do
	if said=$("$simulate" -l "$level" 1 "$seeds"); then
		echo "ok level_$level"
	else
		echo "not ok level_$level: $(echo "$said" | tail -n 1)"
	fi
done
