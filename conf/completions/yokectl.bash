# SPDX-License-Identifier: MIT
# Completion for yokectl(8). A test holds it to the table of commands.
# shellcheck shell=bash disable=SC2207

_yokectl_names() {
	COMPREPLY+=($(compgen -W "$(yokectl "${at[@]}" --timeout 1s --no-header -o "$1" "${@:2}" 2>/dev/null)" -- "$cur"))
}

_yokectl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local globals="--socket --timeout --json --columns --no-header --bytes --wide --color --help --version"
	local nouns="status explain target session lun backing disk array events fault reload check help"
	local -a at=() words=()
	local i

	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-s | --socket) at=(-s "${COMP_WORDS[++i]}") ;;
		-o | --columns | --timeout | --after | --max | --op | --error | --delay | --offset | --length | --count | --torn | --probability | --level | --chunk | --full-stripe-log | --confirm)
			((i++)) ;;
		-*) ;;
		*) words+=("${COMP_WORDS[i]}") ;;
		esac
	done

	case $prev in
	-s | --socket) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	--op) COMPREPLY=($(compgen -W "any read write flush unmap write-zeroes status" -- "$cur")); return ;;
	--error) COMPREPLY=($(compgen -W "EIO ENOSPC EROFS ENXIO EAGAIN" -- "$cur")); return ;;
	--full-stripe-log) COMPREPLY=($(compgen -W "data intent" -- "$cur")); return ;;
	--level) COMPREPLY=($(compgen -W "0 1 5 10" -- "$cur")); return ;;
	esac

	local verbs="" options="" noun=${words[0]}
	[ "$noun" = help ] && noun=${words[1]}
	case $noun in
	status) options="--check" ;;
	target) verbs="list" ;;
	session) verbs="list show kill" ;;
	lun) verbs="list" ;;
	backing) verbs="list" ;;
	disk) verbs="list test label" ;;
	array)
		verbs="list show create add remove start"
		case ${words[1]} in
		create) options="--level --chunk --full-stripe-log --force --confirm --dry-run" ;;
		add | remove | start) options="--force --confirm --dry-run" ;;
		esac ;;
	events) options="--after --max --follow" ;;
	fault)
		verbs="add list remove"
		[ "${words[1]}" = add ] &&
			options="--op --error --delay --offset --length --count --torn --probability" ;;
	esac

	if [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$options $globals" -- "$cur"))
		return
	fi
	case ${#words[@]}:${words[0]}:${words[1]} in
	0:*) COMPREPLY=($(compgen -W "$nouns" -- "$cur")) ;;
	1:explain:*) COMPREPLY=($(compgen -W "$(yokectl explain 2>/dev/null | cut -d' ' -f1)" -- "$cur")) ;;
	1:check:*) COMPREPLY=($(compgen -f -- "$cur")) ;;
	1:help:*) COMPREPLY=($(compgen -W "$nouns" -- "$cur")) ;;
	1:*) COMPREPLY=($(compgen -W "$verbs" -- "$cur")) ;;
	2:help:*) COMPREPLY=($(compgen -W "$verbs" -- "$cur")) ;;
	2:session:show | 2:session:kill) _yokectl_names id session list ;;
	2:array:show | 2:array:add | 2:array:remove | 2:array:start) _yokectl_names array array list ;;
	3:array:remove) _yokectl_names member array show "${words[2]}" ;;
	*:disk:test | 2:disk:label | [3-9]:array:create | 3:array:add | *:array:start) _yokectl_names disk disk list ;;
	2:fault:remove) _yokectl_names id fault list ;;
	2:fault:add) _yokectl_names name backing list ;;
	3:fault:add) COMPREPLY=($(compgen -W "error delay stuck torn" -- "$cur")) ;;
	esac
}

complete -F _yokectl yokectl
