// std::lock, and with it std::scoped_lock, of plain mutexes: all of them at once, by a function of foretell's runtime
// (foretell-runtime/src/wrappers/mutex.rs). libstdc++ takes one, tries the others and begins again where one is taken; each
// time that it begins again would be a path of its own.
#include_next <bits/std_mutex.h>
#if _GLIBCXX_RELEASE == 12 && defined _GLIBCXX_HAS_GTHREADS && !defined FORETELL_LOCK_ALL
#define FORETELL_LOCK_ALL 1

extern "C" void foretell_lock_all(pthread_mutex_t *const *mutexes, unsigned long count);

namespace std _GLIBCXX_VISIBILITY(default) {

inline void lock(mutex &one, mutex &two) {
  pthread_mutex_t *all[] = {one.native_handle(), two.native_handle()};
  foretell_lock_all(all, 2);
}

inline void lock(mutex &one, mutex &two, mutex &three) {
  pthread_mutex_t *all[] = {one.native_handle(), two.native_handle(), three.native_handle()};
  foretell_lock_all(all, 3);
}

} // namespace std

#endif
