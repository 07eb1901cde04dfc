#include <memory>
#include <thread>
#include <cassert>
int main() { auto p = std::make_shared<int>(3); int r = 0; std::thread t([q = p, &r] { r = *q; }); int k = *p; p.reset(); t.join(); assert(r + k == 6); }
