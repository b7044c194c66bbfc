/* SPDX-License-Identifier: MIT */
/* The version of this build, for `--version`, status and logs. */
#ifndef YOKE_CORE_VERSION_H
#define YOKE_CORE_VERSION_H

/* "MAJOR.MINOR.PATCH"; static storage. */
const char *yoke_version(void);

#endif
