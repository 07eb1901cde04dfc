#include <mutex>
#include <thread>
std::mutex m; int n;
int main() { m.lock(); std::thread a([] { n = 1; m.unlock(); }); a.join(); m.lock(); n = 2; m.unlock(); return 0; }
