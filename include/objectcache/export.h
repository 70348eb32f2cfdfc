#pragma once

/// Marks what the shared library exports; everything else is hidden.
#if defined(OBJECTCACHE_STATIC)
#define OBJECTCACHE_EXPORT
#else
#define OBJECTCACHE_EXPORT __attribute__((visibility("default")))
#endif
