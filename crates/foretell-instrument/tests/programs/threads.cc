// Threads, locks, conditions, atomics, thread-locals, exceptions, virtual calls, containers, structs
// passed by value and in registers, longjmp.
#include <atomic>
#include <condition_variable>
#include <csetjmp>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

std::atomic<int> total{0};
std::mutex mutex;
std::condition_variable condition;
bool ready;
thread_local int mine = 3;

template <class T> T square(T x) { return x * x; }

struct Account {
  virtual ~Account() {}
  int balance = 0;
  virtual void deposit(int amount) {
    if (amount < 0) throw std::invalid_argument("negative");
    balance += amount;
  }
};
struct Savings : Account {
  void deposit(int amount) override { Account::deposit(amount * 2); }
};

struct Guard {
  int &count;
  explicit Guard(int &c) : count(c) { ++count; }
  ~Guard() { --count; }
};
int guards;

int nested(int depth) {
  Guard guard(guards);
  if (depth == 0) throw depth;
  return nested(depth - 1) + guards;
}

struct Big { int values[10]; };
int sum(Big big) {
  int result = 0;
  for (int value : big.values) result += value;
  return result;
}

struct Two { long first, second; };
__attribute__((noinline)) Two two(long x) { return {x, x + 1}; }

static jmp_buf environment;
__attribute__((noinline)) void jump(int k) {
  if (k) longjmp(environment, k);
}

int main() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([i] {
      for (int k = 0; k < 100; k++) total += square(i);
      mine++;
    });
  std::thread waiter([] {
    std::unique_lock<std::mutex> lock(mutex);
    condition.wait(lock, [] { return ready; });
    std::puts("ready");
  });
  {
    std::lock_guard<std::mutex> lock(mutex);
    ready = true;
  }
  condition.notify_all();
  waiter.join();
  for (auto &thread : threads) thread.join();

  std::unique_ptr<Account> account(new Savings);
  try {
    account->deposit(5);
    account->deposit(-1);
  } catch (const std::exception &error) {
    std::printf("caught %s %d\n", error.what(), account->balance);
  }
  try {
    nested(total % 7 + 3);
  } catch (int depth) {
    std::printf("unwound to %d with %d guards\n", depth, guards);
  }

  std::map<std::string, int> words;
  words["a"]++;
  words["b"] += 2;
  words["a"]++;
  for (auto &[word, count] : words) std::printf("%s %d\n", word.c_str(), count);

  std::function<int(int)> twice = [](int x) { return x + total; };
  Big big;
  for (int i = 0; i < 10; i++) big.values[i] = total + i;
  Two pair = two(total);
  std::printf("%d %d %d %ld %d\n", total.load(), mine, sum(big), pair.first + pair.second, twice(1));

  volatile int rounds = 0;
  int arrived = setjmp(environment);
  if (arrived < 3) {
    rounds = rounds + 1;
    jump(arrived + 1);
  }
  std::printf("%d\n", rounds);
  return total % 5;
}
