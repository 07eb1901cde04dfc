// Waits with a time limit of libc++'s semaphores, see foretell_waiting.h.
#include <__atomic/atomic_sync.h>
#if _LIBCPP_VERSION / 10000 != 22 || _LIBCPP_STD_VER < 20 || !_LIBCPP_HAS_THREADS
#include_next <__atomic/atomic_sync_timed.h>
#elif !defined _LIBCPP___ATOMIC_ATOMIC_SYNC_TIMED_H
#define _LIBCPP___ATOMIC_ATOMIC_SYNC_TIMED_H

#include <__chrono/duration.h>
#include <__chrono/steady_clock.h>

#pragma GCC system_header

_LIBCPP_BEGIN_NAMESPACE_STD

template <class Waitable, class Predicate, class Count, class Period>
bool __atomic_wait_unless_with_timeout(const Waitable &variable, memory_order order, Predicate &&holds,
                                       const chrono::duration<Count, Period> &time) {
  auto end = chrono::duration_cast<chrono::nanoseconds>((chrono::steady_clock::now() + time).time_since_epoch()).count();
  timespec until = {static_cast<time_t>(end / 1000000000), static_cast<long>(end % 1000000000)};
  return __foretell::wait(
      std::__foretell_address(variable), [&] { return std::__foretell_look(variable, order, holds); }, &until);
}

_LIBCPP_END_NAMESPACE_STD

#endif
