#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 900
# 64 logical units of one target, the last far from the others: the kernel finds exactly them, each
# of its own size and name.
# shellcheck source=tests/guest/common.sh
. "$(dirname "$0")/common.sh"

numbers=({0..62} 255)
size_of() { echo $((1 + $1)); } # MiB
luns=
for number in "${numbers[@]:1}"; do
	backing "lun$number" "$(size_of "$number")M"
	luns+="lun \"$number\" { backing = \"lun$number\" } "
done
start_target "$(size_of 0)M" "$luns"
run_guest luns.sh -e LUNS=${#numbers[@]}

for number in "${numbers[@]}"; do
	echo "lun $number sectors $(($(size_of "$number") * 2048))"
done | sort >"$T/wanted"
sed -nE 's/^(lun .*) wwid t10\.YOKE +[0-9a-f-]{36}$/\1/p' "$T/out" | sort >"$T/found"
diff "$T/wanted" "$T/found" >&2 || fail "other logical units than the configuration's"
expect "names" ${#numbers[@]} "$(grep -o 'wwid .*' "$T/out" | sort -u | wc -l)"
printed "^iscsiadm: ${#numbers[@]}\$"
printed "^${#numbers[@]}\$"
! grep -E '^lun .* without a disk$' "$T/out" >&2 || fail "more than the disks"
kernel_is_quiet
no_session_is_left
