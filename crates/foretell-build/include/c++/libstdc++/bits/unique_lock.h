// std::lock of locks that were put off, see std_mutex.h.
#include <bits/std_mutex.h>
#include_next <bits/unique_lock.h>
#if defined FORETELL_LOCK_ALL && !defined FORETELL_LOCK_DEFERRED
#define FORETELL_LOCK_DEFERRED 1

namespace std _GLIBCXX_VISIBILITY(default) {

inline void lock(unique_lock<mutex> &one, unique_lock<mutex> &two) {
  if (!one.mutex() || one.owns_lock()) one.lock(); // throws
  if (!two.mutex() || two.owns_lock()) two.lock();
  lock(*one.mutex(), *two.mutex());
  one = unique_lock<mutex>(*one.mutex(), adopt_lock);
  two = unique_lock<mutex>(*two.mutex(), adopt_lock);
}

} // namespace std

#endif
