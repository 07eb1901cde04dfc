#include <mutex>
#include <thread>
#include <cassert>
std::once_flag f; int v;
void go() { std::call_once(f, [] { v++; }); assert(v == 1); }
int main() { std::thread t(go); go(); t.join(); }
