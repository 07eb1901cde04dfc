#include <atomic>
#include <cassert>
#include <thread>
int n = 0;
void add() { std::atomic_ref<int> r(n); r.store(r.load() + 1); }
int main() { std::thread a(add), b(add); a.join(); b.join(); assert(n == 2); }
