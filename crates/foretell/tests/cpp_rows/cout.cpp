#include <iostream>
#include <mutex>
#include <thread>
int v; std::mutex m;
void add() { std::lock_guard g(m); v++; std::cout << "v is " << v << std::endl; }
int main() { std::thread t(add); add(); t.join(); }
