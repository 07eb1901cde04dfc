// Text for std::cout and its kin, of libc++. Threads may use these streams at the same time: what libc++ does with their
// state then is its own affair, and stays in its shared library.
#include <__config>
#if _LIBCPP_VERSION / 10000 != 22 || !_LIBCPP_HAS_LOCALIZATION
#include_next <__ostream/put_character_sequence.h>
#elif !defined FORETELL_PUT_CHARACTER_SEQUENCE_H
#define FORETELL_PUT_CHARACTER_SEQUENCE_H

#define __put_character_sequence __foretell_put
#include_next <__ostream/put_character_sequence.h>
#undef __put_character_sequence

#pragma GCC system_header

_LIBCPP_BEGIN_NAMESPACE_STD

extern _LIBCPP_EXPORTED_FROM_ABI basic_ostream<char> cout, cerr, clog;

template <class C, class Traits>
basic_ostream<C, Traits> &__put_character_sequence(basic_ostream<C, Traits> &stream, const C *text, size_t length) {
  const void *given = &stream;
  bool is_standard = given == &cout || given == &cerr || given == &clog;
  // Without a width there is nothing to fill up.
  if (is_standard && stream.width() == 0) return stream.write(text, length);
  return std::__foretell_put(stream, text, length);
}

_LIBCPP_END_NAMESPACE_STD

#endif
