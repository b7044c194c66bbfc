# SPDX-License-Identifier: MIT
# Completion for yoke-bench(1). A test holds it to the table of options.
# shellcheck shell=bash disable=SC2207

_yoke_bench() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local options="--rw --bs --qd --sessions --workers --rate --think --zipf --shift --stream
		--profile --list-profiles --time --warmup --ramp --io-size --steady --repeat
		--luns --size --discover --policy --initiator --chap-file --header-digest --timeout
		--threads --fail-path --data --seed --no-fill --destroy --expect --cache --cross-check
		--verify --journal --check-journal --json --csv --report --color --help --version"

	COMPREPLY=()
	if [ "${COMP_WORDS[1]}" = report ] && [ "$COMP_CWORD" -gt 1 ]; then
		options="--against --out"
		prev=report
	fi
	case $prev in
	--rw) COMPREPLY=($(compgen -W "read write randread randwrite rw:70 randrw:30 zipfread zipfwrite zipfrw:70" -- "$cur")) ;;
	--profile)
		COMPREPLY=($(compgen -W "$(yoke-bench --list-profiles 2>/dev/null | cut -d' ' -f1)" -- "$cur")
			$(compgen -f -X '!*.conf' -- "$cur")) ;;
	--policy) COMPREPLY=($(compgen -W "round-robin least-in-flight failover" -- "$cur")) ;;
	--data) COMPREPLY=($(compgen -W "random repeat zero" -- "$cur")) ;;
	--color) COMPREPLY=($(compgen -W "auto always never" -- "$cur")) ;;
	--chap-file | --cross-check | --journal | --json | --csv | --report | --out)
		COMPREPLY=($(compgen -f -- "$cur")) ;;
	--bs | --qd | --sessions | --workers | --rate | --think | --zipf | --shift | --stream | --time | \
		--warmup | --ramp | --io-size | --repeat | --luns | --size | --initiator | --timeout | \
		--threads | --fail-path | --seed | --expect | --cache) ;;
	report) COMPREPLY=($(compgen -W "$options" -- "$cur") $(compgen -f -X '!*.json' -- "$cur")) ;;
	*)
		if [[ $cur == -* ]]; then
			COMPREPLY=($(compgen -W "$options" -- "$cur"))
		elif [ "$COMP_CWORD" = 1 ]; then
			COMPREPLY=($(compgen -W "report iscsi://" -- "$cur"))
		else
			COMPREPLY=($(compgen -W "iscsi://" -- "$cur"))
		fi
		;;
	esac
}

complete -F _yoke_bench yoke-bench
