#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A file system goes through qemu-img onto a LUN and back, byte for byte, over both kinds of store.
. "$(dirname "$0")/../functions.sh"

left=$(free_port)
right=$(free_port)
truncate -s 96M "$T/disk.img"
cat >"$T/yoke.conf" <<CONF
node "e2e" {
  number = 1
  state_dir = "$T/state"
  control = "$T/yoked.sock"
}
portal "left"  { listen = { "127.0.0.1:$left" }  group = 1 }
portal "right" { listen = { "127.0.0.1:$right" }  group = 2 }
backing "ram"  { driver = "ram"  size = "96M" }
backing "file" { driver = "file"  path = "$T/disk.img" }
target "iqn.2026-11.org.yoke:e2e" {
  portals = { "left", "right" }  allow = { "*" }
  lun "0" { backing = "ram" }
  lun "1" { backing = "file" }
}
CONF
mkdir "$T/tree"
cp -r "$YOKE_TOP/tests" "$YOKE_TOP/core" "$T/tree"
truncate -s 64M "$T/fs.img"
mke2fs -q -t ext4 -d "$T/tree" "$T/fs.img"

start_yoked "$T/yoke.conf"
for lun in 0 1; do
	url="iscsi://127.0.0.1:$left/iqn.2026-11.org.yoke:e2e/$lun"
	back="iscsi://127.0.0.1:$right/iqn.2026-11.org.yoke:e2e/$lun"
	qemu-img convert -n -f raw -O raw "$T/fs.img" "$url"
	qemu-img convert -f raw -O raw "$back" "$T/back.img"
	expect "size of LUN $lun" $((96 << 20)) "$(stat -c %s "$T/back.img")"
	cmp -n $((64 << 20)) "$T/fs.img" "$T/back.img" || fail "LUN $lun returns other bytes"
	e2fsck -fn "$T/back.img" >"$T/fsck" 2>&1 || fail "e2fsck: $(cat "$T/fsck")"
done
cmp -n $((64 << 20)) "$T/fs.img" "$T/disk.img" || fail "the file holds other bytes than the LUN"
