/* foretell.h: marks for foretell in C and C++ programs.
 *
 *   FORETELL_ATOMIC_BEGIN("transfer");
 *   from->balance -= amount;
 *   to->balance += amount;
 *   FORETELL_ATOMIC_END();
 *
 * says that no other thread should be able to tell the steps in between apart. Regions nest; a region
 * ends in the function in which it began. In programs that are not built with `foretell cc` or
 * `foretell c++` the marks are nothing. */
#ifndef FORETELL_H
#define FORETELL_H

#ifdef __FORETELL__

#ifdef __cplusplus
extern "C" {
#endif
/* The second argument is filled in by the compiler. */
void __foretell_region_begin(const char *name, const void *site);
void __foretell_region_end(const void *site);
#ifdef __cplusplus
}
#endif

#define FORETELL_ATOMIC_BEGIN(name) __foretell_region_begin((name), (const void *)0)
#define FORETELL_ATOMIC_END() __foretell_region_end((const void *)0)

#else

#define FORETELL_ATOMIC_BEGIN(name) ((void)0)
#define FORETELL_ATOMIC_END() ((void)0)

#endif

#ifdef __cplusplus
#ifdef __FORETELL__
/* Part of the line that declares the object, as far as reports are concerned. */
#define FORETELL_IN_PLACE __attribute__((always_inline, nodebug)) inline
#else
#define FORETELL_IN_PLACE inline
#endif
/* The same as an object: the region ends with the scope, also when it is left by an exception. */
struct ForetellAtomic {
  FORETELL_IN_PLACE explicit ForetellAtomic(const char *name) {
    FORETELL_ATOMIC_BEGIN(name);
    (void)name;
  }
  FORETELL_IN_PLACE ~ForetellAtomic() { FORETELL_ATOMIC_END(); }
  ForetellAtomic(const ForetellAtomic &) = delete;
  ForetellAtomic &operator=(const ForetellAtomic &) = delete;
};
#undef FORETELL_IN_PLACE
#endif

#endif
