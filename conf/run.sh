#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Serves conf/dev.conf from ./run/ in the foreground until Ctrl-C (`make run`).
set -eu
cd "$(dirname "$0")/.."
top=$PWD
iqn=iqn.2026-11.org.yoke:demo

mkdir -p run/state
for i in 0 1 2 3; do [ -e run/d$i.img ] || truncate -s 256M run/d$i.img; done
sed -e "s|@state@|$top/run/state|; s|@control@|$top/run/yoked.sock|; s|@disks@|$top/run|" \
	conf/dev.conf >run/yoke.conf
build/release/yoked -c run/yoke.conf --check

cat <<EOF

$iqn, on 127.0.0.1:3260 and 127.0.0.1:3261: LUN 0 (run/disk.img), LUN 1 (array r5 of run/d?.img).
Ctrl-C stops; the data stay in run/. Once the log below says "started":

  here    iscsi-ls -s iscsi://127.0.0.1:3260
          iscsi-inq iscsi://127.0.0.1:3260/$iqn/0
          build/release/yokectl -s run/yoked.sock status
          build/release/yokectl -s run/yoked.sock array show r5
  QEMU    qemu-img info iscsi://127.0.0.1:3260/$iqn/0
  Linux   iscsiadm -m discovery -t sendtargets -p 127.0.0.1:3260    # package open-iscsi
          iscsiadm -m node -T $iqn --login
          multipath -ll                 # package multipath-tools: two paths, one a portal

Other hosts need an address of this machine in 'listen' of conf/dev.conf; README.md says how
ESXi, Windows and others connect then.

EOF
# The array is found again by what its disks say, but for the first time.
ctl() { build/release/yokectl -s run/yoked.sock "$@"; }
(
	main=$$
	until ctl status >/dev/null 2>&1; do
		kill -0 $main 2>/dev/null || exit 0
		sleep 0.1
	done
	ctl array show r5 >/dev/null 2>&1 || ctl array create r5 --level 5 run/d?.img
) &
exec build/release/yoked -c run/yoke.conf
