/* Correct: every acquire has its release. */
#include <semaphore>
#include <thread>
static std::counting_semaphore<2> s{2};
static void f() { s.acquire(); s.release(); }
int main() { std::thread a(f), b(f), c(f); a.join(); b.join(); c.join(); }
