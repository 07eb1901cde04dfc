// std::atomic::wait and notify of libc++, see foretell_waiting.h.
#include <__config>
#if _LIBCPP_VERSION / 10000 != 22 || _LIBCPP_STD_VER < 20 || !_LIBCPP_HAS_THREADS
#include_next <__atomic/atomic_sync.h>
#elif !defined _LIBCPP___ATOMIC_ATOMIC_SYNC_H
#define _LIBCPP___ATOMIC_ATOMIC_SYNC_H

#include <__atomic/atomic_waitable_traits.h>
#include <__atomic/contention_t.h>
#include <__atomic/memory_order.h>
#include <__atomic/to_gcc_order.h>
#include <__memory/addressof.h>
#include <__thread/poll_with_backoff.h>
#include <__type_traits/decay.h>
#include <cstring>

#include "../../foretell_waiting.h"

#pragma GCC system_header

_LIBCPP_BEGIN_NAMESPACE_STD

template <class Waitable> const volatile void *__foretell_address(const Waitable &variable) {
  return __atomic_waitable_traits<__decay_t<Waitable>>::__atomic_contention_address(variable);
}

// Looks at the variable; the predicate may change what it is given.
template <class Waitable, class Predicate>
bool __foretell_look(const Waitable &variable, memory_order order, Predicate &holds) {
  auto value = __atomic_waitable_traits<__decay_t<Waitable>>::__atomic_load(variable, order);
  return holds(value);
}

template <class Waitable, class Predicate>
void __atomic_wait_unless(const Waitable &variable, memory_order order, Predicate &&holds) {
  __foretell::wait(std::__foretell_address(variable),
                   [&] { return std::__foretell_look(variable, order, holds); });
}

template <class Waitable> void __atomic_notify_one(const Waitable &variable) {
  __foretell::wake(std::__foretell_address(variable), false);
}

template <class Waitable> void __atomic_notify_all(const Waitable &variable) {
  __foretell::wake(std::__foretell_address(variable), true);
}

template <typename T> bool __cxx_nonatomic_compare_equal(const T &one, const T &other) {
  if constexpr (__is_integral(T) || __is_enum(T) || __is_pointer(T))
    return one == other;
  else
    return __builtin_memcmp(std::addressof(one), std::addressof(other), sizeof(T)) == 0;
}

template <class Waitable, class T> void __atomic_wait(Waitable &variable, T old, memory_order order) {
  std::__atomic_wait_unless(variable, order, [&](const T &now) {
    return !std::__cxx_nonatomic_compare_equal(now, old);
  });
}

_LIBCPP_END_NAMESPACE_STD

#endif
