# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Runs iscsi-test-cu (libiscsi's conformance suite) test by test and holds each result against a
# file of expectations:  NAME pass|skip|fail [REASON]
#
# One process a test, two URLs of the same LUN; a test that is expected to skip or fail must do
# just that, so that the file stays true.
. "$(dirname "${BASH_SOURCE[0]}")/../functions.sh"

CONFORM_SECONDS=${CONFORM_SECONDS:-120}

# verdict FILE STATUS: what iscsi-test-cu's output says. It asks for reservation keys before each
# test, and its note that there is none to be had is no skip.
verdict() {
	if [ "$2" = 124 ]; then
		echo hang
	elif grep -q 'had failures:' "$1"; then
		echo fail # the tool may crash afterwards, cleaning up
	elif ! grep -q 'Tests completed with return value' "$1"; then
		echo crash
	elif grep 'SKIPPED' "$1" | grep -qv 'PERSISTENT RESERVE IN'; then
		echo skip
	elif awk '$1 == "tests" { good = $4 == 1 && $5 == 0 } END { exit !good }' "$1"; then
		echo pass
	else
		echo fail
	fi
}

# conform EXPECTATIONS URL URL2: runs every test named there; prints a line each for tests/run.
conform() {
	local name want reason rc got out=$T/conform.out bad=0
	while read -r name want reason; do
		case $name in '' | '#'*) continue ;; esac
		rc=0
		timeout "$CONFORM_SECONDS" iscsi-test-cu -d -S -n -t "$name" "$2" "$3" \
			>"$out" 2>&1 </dev/null || rc=$?
		got=$(verdict "$out" $rc)
		if [ "$got" != "$want" ]; then
			echo "not ok $name: $got, expected $want"
			sed 's/^/    /' "$out"
			bad=1
		elif [ "$got" = pass ]; then
			echo "ok $name"
		elif [ "$got" = skip ]; then
			echo "skip $name: $reason"
		else
			echo "ok $name ($got as expected: $reason)"
		fi
	done <"$1"
	return $bad
}

# every_test_named FILE: no test of the families in FILE is missing from it.
every_test_named() {
	local family
	iscsi-test-cu -l 2>/dev/null | grep -E '^i?SCSI\.[^.]+\.' | sort >"$T/all"
	awk '$1 !~ /^#/ && NF { print $1 }' "$1" | sort >"$T/named"
	cut -d. -f1,2 "$T/named" | sort -u | while read -r family; do
		grep "^$family\." "$T/all"
	done | comm -23 - "$T/named" >"$T/missing"
	[ ! -s "$T/missing" ] || fail "$1 lacks $(tr '\n' ' ' <"$T/missing")"
}
