#!/bin/sh
# SPDX-License-Identifier: MIT
# The kernel's own target (LIO) in the guest, on a RAM-backed file, and the
# initiator logged in to it over the guest's loopback: figures to hold those of
# another target in the same guest against (see local.sh).
#   run-guest scripts/lio.sh
#   -e BACKEND=file|brd|rd_mcp   tmpfs file (default), RAM block device, LIO's own RAM disk
#   -e MIB=64 -e RUNTIME=10 -e DEPTH=32
#   -e LOGIN='node.conn[0].iscsi.HeaderDigest CRC32C'   settings of the session
set -eu
# shellcheck source=tests/guest/guest/guest.sh
. /lib/guest.sh

BACKEND=${BACKEND:-file} MIB=${MIB:-64}
TARGET=iqn.2000-01.test.guest:lio
PORTAL=127.0.0.1:3260

say "LIO on $BACKEND, $MIB MiB"
mkdir -p /var/target/pr         # LIO keeps reservations there
modprobe -a configfs target_core_mod iscsi_target_mod
mount -t configfs configfs /sys/kernel/config 2>/dev/null || :
core=/sys/kernel/config/target/core
case $BACKEND in
	file)
		modprobe target_core_file
		mkdir /run/lun
		mount -t tmpfs -o "size=$((MIB + 1))m" tmpfs /run/lun
		truncate -s "${MIB}M" /run/lun/0
		store=$core/fileio_0/lun
		mkdir -p "$store"
		echo "fd_dev_name=/run/lun/0,fd_dev_size=$((MIB << 20)),fd_buffered_io=1" >"$store/control"
		;;
	brd)
		modprobe target_core_iblock
		modprobe brd rd_nr=1 rd_size=$((MIB << 10))
		store=$core/iblock_0/lun
		mkdir -p "$store"
		echo "udev_path=/dev/ram0" >"$store/control"
		;;
	rd_mcp)
		store=$core/rd_mcp_0/lun
		mkdir -p "$store"
		echo "rd_pages=$((MIB << 8))" >"$store/control"
		;;
esac
echo 00000000-0000-4000-8000-000000000001 >"$store/wwn/vpd_unit_serial"
echo 1 >"$store/enable"

tpg=/sys/kernel/config/target/iscsi/$TARGET/tpgt_1
mkdir -p "$tpg/np/$PORTAL" "$tpg/lun/lun_0"
ln -s "$store" "$tpg/lun/lun_0/lun"
for a in authentication=0 generate_node_acls=1 demo_mode_write_protect=0 cache_dynamic_acls=1; do
	echo "${a#*=}" >"$tpg/attrib/${a%=*}"
done
echo 1 >"$tpg/enable"

start_iscsid
# shellcheck disable=SC2086
login "$TARGET" "$PORTAL" ${LOGIN:-}
bench "$(disk "$TARGET" "$PORTAL")"
logout "$TARGET" "$PORTAL"
