// Waits with a time limit of semaphores, see foretell_waiting.h.
#include <bits/atomic_wait.h>
#if _GLIBCXX_RELEASE != 12 || !defined _GLIBCXX_HAS_GTHREADS
#include_next <bits/atomic_timed_wait.h>
#elif !defined _GLIBCXX_ATOMIC_TIMED_WAIT_H
#define _GLIBCXX_ATOMIC_TIMED_WAIT_H 1

#include <bits/chrono.h>

namespace std _GLIBCXX_VISIBILITY(default) {
namespace __foretell {

template <typename Predicate, typename Count, typename Period>
bool wait_for(const volatile void *address, Predicate &&holds, const chrono::duration<Count, Period> &time) {
  auto end = chrono::ceil<chrono::nanoseconds>(chrono::steady_clock::now() + time).time_since_epoch().count();
  timespec until = {static_cast<time_t>(end / 1000000000), static_cast<long>(end % 1000000000)};
  return wait(address, holds, &until);
}

} // namespace __foretell

template <typename T, typename Predicate, typename Clock, typename Duration>
bool __atomic_wait_address_until(const T *address, Predicate holds,
                                 const chrono::time_point<Clock, Duration> &until) noexcept {
  return __foretell::wait_for(address, holds, until - Clock::now());
}

template <typename Predicate, typename Clock, typename Duration>
bool __atomic_wait_address_until_bare(const __detail::__platform_wait_t *address, Predicate holds,
                                      const chrono::time_point<Clock, Duration> &until) noexcept {
  return __foretell::wait_for(address, __foretell::taken(address, holds), until - Clock::now());
}

template <typename T, typename Value, typename Clock, typename Duration>
bool __atomic_wait_address_until_v(const T *address, T &&old, Value &&value,
                                   const chrono::time_point<Clock, Duration> &until) noexcept {
  auto changed = [&] { return !__detail::__atomic_compare(old, value()); };
  return __foretell::wait_for(address, changed, until - Clock::now());
}

template <typename T, typename Predicate, typename Count, typename Period>
bool __atomic_wait_address_for(const T *address, Predicate holds,
                               const chrono::duration<Count, Period> &time) noexcept {
  return __foretell::wait_for(address, holds, time);
}

template <typename Predicate, typename Count, typename Period>
bool __atomic_wait_address_for_bare(const __detail::__platform_wait_t *address, Predicate holds,
                                    const chrono::duration<Count, Period> &time) noexcept {
  return __foretell::wait_for(address, __foretell::taken(address, holds), time);
}

template <typename T, typename Value, typename Count, typename Period>
bool __atomic_wait_address_for_v(const T *address, T &&old, Value &&value,
                                 const chrono::duration<Count, Period> &time) noexcept {
  auto changed = [&] { return !__detail::__atomic_compare(old, value()); };
  return __foretell::wait_for(address, changed, time);
}

} // namespace std

#endif
