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

Serving $iqn, LUN 0 (run/disk.img), on 127.0.0.1:3260 and 127.0.0.1:3261. Ctrl-C stops.

  here    iscsi-ls -s iscsi://127.0.0.1:3260
          iscsi-inq iscsi://127.0.0.1:3260/$iqn/0
          build/release/yokectl -s run/yoked.sock status
  Linux   iscsiadm -m discovery -t sendtargets -p 127.0.0.1:3260
          iscsiadm -m node -T $iqn --login
          multipath -ll                 # two paths, one per portal

For other hosts, put an address of this machine into 'listen' in conf/dev.conf (ADDR below).
  ESXi    esxcli iscsi software set --enabled=true
          esxcli iscsi adapter discovery sendtarget add -A vmhba64 -a ADDR:3260
          esxcli storage core adapter rescan --all
  Windows New-IscsiTargetPortal -TargetPortalAddress ADDR -TargetPortalPortNumber 3260
          Connect-IscsiTarget -NodeAddress $iqn -IsMultipathEnabled \$true

EOF
exec build/release/yoked -c run/yoke.conf
