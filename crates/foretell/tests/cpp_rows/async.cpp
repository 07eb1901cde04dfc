#include <future>
#include <cassert>
int main(){ auto f = std::async(std::launch::async, []{ return 41; }); assert(f.get()==41); return 0; }
