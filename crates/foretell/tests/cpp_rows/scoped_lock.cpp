#include <mutex>
#include <thread>
#include <cassert>
std::mutex a, b; int x = 5, y = 5;
void move(int n) { std::scoped_lock l(a, b); x -= n; y += n; }
int main() { std::thread t(move, 1); move(2); t.join(); assert(x + y == 10); }
