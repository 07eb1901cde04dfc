// std::this_thread::sleep_for sleeps by one call of the library, not by a loop around nanosleep: a loop that sleeps between
// two looks is then one that waits (foretell-instrument/src/awaits.rs).
#pragma push_macro("_GLIBCXX_USE_NANOSLEEP")
#undef _GLIBCXX_USE_NANOSLEEP
#include_next <bits/this_thread_sleep.h>
#pragma pop_macro("_GLIBCXX_USE_NANOSLEEP")
