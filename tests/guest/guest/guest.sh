# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Helpers for scripts that run in the guest:  . /lib/guest.sh
#
# PORTAL1 and PORTAL2 are the target's portals as seen from here, one through
# each network card.

say() { printf '\n== %s\n' "$*"; }
die() { echo "FAILED: $*" >&2; exit 1; }

# wait_for SECONDS COMMAND...: run COMMAND until it succeeds.
wait_for() {
	_end=$(($(cut -d. -f1 /proc/uptime) + $1)); shift
	until "$@" >/dev/null 2>&1; do
		[ "$(cut -d. -f1 /proc/uptime)" -lt "$_end" ] || { echo "gave up on: $*" >&2; return 1; }
		usleep 50000
	done
}

# listening PORT: whether something in the guest listens on it.
listening() { grep -q ":$(printf %04X "$1") 0*:0000 0A" /proc/net/tcp; }

# daemon PROGRAM [ARGUMENT]...: start one that puts itself in the background.
daemon() {
	"$@" >"/run/${1##*/}.log" 2>&1 || { cat "/run/${1##*/}.log"; return 1; }
}

start_iscsid() {
	modprobe -a iscsi_tcp sd_mod sg && daemon iscsid
}

# discover PORTAL: the names of its targets. The portals that the target
# reports are left out: 127.0.0.1 means something else here.
discover() {
	iscsiadm -m discovery -t sendtargets -p "$1" -o nonpersistent | awk '{ print $2 }' | sort -u
}

first_target() { discover "$1" | head -n 1 | grep . || die "no target at $1"; }

# new_iface NAME INITIATOR: make an iface under which another initiator logs in:
#   IFACE=NAME login TARGET PORTAL
new_iface() {
	iscsiadm -m iface -I "$1" -o new >/dev/null &&
		iscsiadm -m iface -I "$1" -o update -n iface.initiatorname -v "$2" >/dev/null
}

# node TARGET PORTAL [NAME VALUE]...: make the record of a portal, with settings.
node() {
	_t=$1 _p=$2; shift 2
	iscsiadm -m node -T "$_t" -p "$_p" -I "${IFACE:-default}" -o new >/dev/null || return
	while [ $# -ge 2 ]; do
		iscsiadm -m node -T "$_t" -p "$_p" -o update -n "$1" -v "$2" || return
		shift 2
	done
}

# login TARGET PORTAL [NAME VALUE]...: log in and wait for a disk.
login() {
	node "$@" && iscsiadm -m node -T "$1" -p "$2" --login && wait_for 20 disk "$1" "$2"
}

logout() { iscsiadm -m node -T "$1" -p "$2" --logout; }

# session TARGET PORTAL: the sysfs folder of that session.
session() {
	for _c in /sys/class/iscsi_connection/connection*; do
		[ -e "$_c/persistent_address" ] || continue
		[ "$(cat "$_c/persistent_address"):$(cat "$_c/persistent_port")" = "$2" ] || continue
		_s=${_c##*/connection} _s=/sys/class/iscsi_session/session${_s%:*}
		[ "$(cat "$_s/targetname")" = "$1" ] && { echo "$_s"; return; }
	done
	return 1
}

# disk TARGET PORTAL [LUN]: the device of a LUN (the lowest one, if not named).
disk() {
	_s=$(session "$1" "$2") || return
	for _b in "$_s"/device/target*/*:${3:-*}/block/sd*; do
		[ -e "$_b" ] && [ -b "/dev/${_b##*/}" ] && { echo "/dev/${_b##*/}"; return; }
	done
	return 1
}

# sg DISK: its SCSI generic device.
sg() {
	for _g in "/sys/block/${1##*/}/device/scsi_generic"/sg*; do echo "/dev/${_g##*/}"; done
}

# udev's database is what multipathd learns about disks from.
start_udev() {
	[ -e /run/udev/control ] && return
	daemon /usr/lib/systemd/systemd-udevd --daemon --resolve-names=never || return
	udevadm trigger --subsystem-match=block && udevadm settle
}

start_multipath() {
	modprobe -a dm-multipath dm-service-time dm-round-robin dm-queue-length || return
	modprobe scsi_dh_alua || :      # Debian's cloud kernel is without
	start_udev && daemon multipathd && wait_for 20 multipathd show status
}

# mpath DISK: the multipath device over it.
mpath() {
	for _h in "/sys/block/${1##*/}/holders"/dm-*; do
		[ -e "$_h" ] && { echo "/dev/mapper/$(cat "$_h/dm/name")"; return; }
	done
	return 1
}

# live_paths DEVICE COUNT: whether that many of its paths are usable.
live_paths() {
	[ "$(multipathd show paths raw format '%m %t' | grep -c "^${1##*/} active")" -eq "$2" ]
}

# iops DEVICE RW SECONDS [FIO OPTION]...: the rate of 4 KiB accesses.
iops() {
	_d=$1 _rw=$2 _t=$3; shift 3
	fio --name=iops --filename="$_d" --rw="$_rw" --bs=4k --direct=1 --ioengine=libaio \
		--iodepth="${DEPTH:-32}" --time_based --runtime="$_t" --thread --minimal "$@" |
		awk -F';' '{ printf "%d\n", $8 + $49 }'
}

# bench DEVICE: one line of figures for each kind of access.
bench() {
	for _rw in randwrite randread; do
		echo "$_rw 4k, depth ${DEPTH:-32}: $(iops "$1" $_rw "${RUNTIME:-10}") IOPS"
	done
}
