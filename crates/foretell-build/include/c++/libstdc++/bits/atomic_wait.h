// std::atomic::wait and notify, see foretell_waiting.h.
#include <bits/c++config.h>
#if _GLIBCXX_RELEASE != 12 || !defined _GLIBCXX_HAS_GTHREADS
#include_next <bits/atomic_wait.h>
#elif !defined _GLIBCXX_ATOMIC_WAIT_H
#define _GLIBCXX_ATOMIC_WAIT_H 1

#include "../../foretell_waiting.h"
#include <bits/functional_hash.h>
#include <bits/gthr.h>
#include <ext/numeric_traits.h>

#ifndef __cpp_lib_atomic_wait
#define __cpp_lib_atomic_wait 201907L
#endif

namespace std _GLIBCXX_VISIBILITY(default) {
namespace __detail {

using __platform_wait_t = int;
inline constexpr size_t __platform_wait_alignment = 4;

inline void __thread_relax() noexcept {
#if defined __i386__ || defined __x86_64__
  __builtin_ia32_pause();
#else
  __gthread_yield();
#endif
}

inline void __thread_yield() noexcept { __gthread_yield(); }

template <typename Predicate> bool __atomic_spin(Predicate &holds) noexcept { return holds(); }

template <typename T> bool __atomic_compare(const T &one, const T &other) noexcept {
  if constexpr (__is_integral(T) || __is_enum(T) || __is_pointer(T))
    return one == other;
  else
    return __builtin_memcmp(&one, &other, sizeof(T)) == 0;
}

} // namespace __detail

template <typename T, typename Value>
void __atomic_wait_address_v(const T *address, T old, Value value) noexcept {
  __foretell::wait(address, [&] { return !__detail::__atomic_compare(old, value()); });
}

template <typename T, typename Predicate>
void __atomic_wait_address(const T *address, Predicate holds) noexcept {
  __foretell::wait(address, holds);
}

template <typename Predicate>
void __atomic_wait_address_bare(const __detail::__platform_wait_t *address, Predicate holds) noexcept {
  __foretell::wait(address, __foretell::taken(address, holds));
}

template <typename T> void __atomic_notify_address(const T *address, bool all) noexcept {
  __foretell::wake(address, all);
}

inline void __atomic_notify_address_bare(const __detail::__platform_wait_t *address, bool all) noexcept {
  __foretell::wake(address, all);
}

} // namespace std

#endif
