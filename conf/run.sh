#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Serves conf/dev.conf from ./run/ in the foreground until Ctrl-C (`make run`).
set -eu
cd "$(dirname "$0")/.."
top=$PWD
iqn=iqn.2026-11.org.yoke:demo

mkdir -p run/state
sed -e "s|@state@|$top/run/state|; s|@control@|$top/run/yoked.sock|; s|@disks@|$top/run|" \
	conf/dev.conf >run/yoke.conf
build/release/yoked -c run/yoke.conf --check

cat <<EOF

$iqn, LUN 0 (run/disk.img), on 127.0.0.1:3260 and 127.0.0.1:3261.
Ctrl-C stops; the data stay in run/. Once the log below says "started":

  here    iscsi-ls -s iscsi://127.0.0.1:3260
          iscsi-inq iscsi://127.0.0.1:3260/$iqn/0
          build/release/yokectl -s run/yoked.sock status
  QEMU    qemu-img info iscsi://127.0.0.1:3260/$iqn/0
  Linux   iscsiadm -m discovery -t sendtargets -p 127.0.0.1:3260    # package open-iscsi
          iscsiadm -m node -T $iqn --login
          multipath -ll                 # package multipath-tools: two paths, one a portal

Other hosts need an address of this machine in 'listen' of conf/dev.conf; README.md says how
ESXi, Windows and others connect then.

EOF
exec build/release/yoked -c run/yoke.conf
