// Correct: an actor with a mailbox. What it owns is touched by its own thread only; others send it
// messages.
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>
#include <variant>

struct Deposit {
  int amount;
};
struct Stop {};
using Message = std::variant<Deposit, Stop>;

class Mailbox {
 public:
  void send(Message message) {
    {
      std::lock_guard lock(mutex_);
      messages_.push_back(message);
    }
    arrived_.notify_one();
  }

  Message receive() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return !messages_.empty(); });
    Message message = messages_.front();
    messages_.pop_front();
    return message;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Message> messages_;
};

class Account {
 public:
  Account() : thread_([this] { run(); }) {}

  void deposit(int amount) { mailbox_.send(Deposit{amount}); }

  int close() {
    mailbox_.send(Stop{});
    thread_.join();
    return balance_;
  }

 private:
  void run() {
    for (;;) {
      Message message = mailbox_.receive();
      if (std::holds_alternative<Stop>(message)) return;
      balance_ += std::get<Deposit>(message).amount;
    }
  }

  Mailbox mailbox_;
  int balance_ = 0;
  std::thread thread_;
};

int main() {
  Account account;
  std::thread other([&account] { account.deposit(20); });
  account.deposit(10);
  other.join();
  int balance = account.close();
  assert(balance == 30);
  std::printf("balance %d\n", balance);
}
