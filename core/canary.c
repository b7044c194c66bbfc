/* SPDX-License-Identifier: MIT */
/* Which canary is switched off; nothing outside the simulator's builds. */
#include "core/canary.h"

#ifdef YOKE_CANARIES
enum canary canary_now = CANARY_NONE;
#endif
