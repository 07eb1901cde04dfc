#include <future>
#include <cassert>
#include <mutex>
std::mutex m; int n;
int next(){ int r; { std::lock_guard g(m); r = n; } std::lock_guard g(m); n = r+1; return r; }
int main(){ auto a = std::async(std::launch::async, next); auto b = std::async(std::launch::async, next); int x=a.get(), y=b.get(); assert(x!=y); }
