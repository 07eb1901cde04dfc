// Waiting for a variable to change, by functions of foretell's runtime (foretell-runtime/src/wrappers/waiting.rs),
// in the place of what libstdc++ 12 and libc++ 22 have for it; other versions keep theirs. The names in namespace std
// are those that the other headers of these libraries use.
#ifndef FORETELL_WAITING_H
#define FORETELL_WAITING_H 1

#include <time.h>

extern "C" {
void foretell_waiting_begin(const volatile void *address);
void foretell_waiting_end(const volatile void *address);
int foretell_waiting_sleep(const volatile void *address, const timespec *until);
void foretell_waiting_wake(const volatile void *address, int all);
}

namespace std __attribute__((__visibility__("default"))) {
namespace __foretell {

// Until the predicate holds or the time is over; says whether it holds.
template <typename Predicate>
bool wait(const volatile void *address, Predicate &&holds, const timespec *until = nullptr) {
  foretell_waiting_begin(address);
  bool held = holds();
  while (!held) {
    int late = foretell_waiting_sleep(address, until);
    held = holds();
    if (late) break;
  }
  foretell_waiting_end(address);
  return held;
}

// Semaphores take from a count that is not 0. To take may fail because somebody else changed the count meanwhile; that
// is no reason to sleep.
#if __cplusplus >= 201402L
template <typename Predicate> auto taken(const int *count, Predicate &takes) {
  return [count, &takes] {
    bool took;
    do
      took = takes();
    while (!took && __atomic_load_n(count, __ATOMIC_ACQUIRE) != 0);
    return took;
  };
}
#endif

inline void wake(const volatile void *address, bool all) {
  foretell_waiting_begin(address);
  foretell_waiting_wake(address, all);
  foretell_waiting_end(address);
}

} // namespace __foretell
} // namespace std

#endif
