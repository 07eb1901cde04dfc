// A subject tells its observers of a change. It copies the list under the lock and calls them without
// it, so an observer may be called after it has unsubscribed and closed what it needs.
#include <algorithm>
#include <cassert>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void changed(int value) = 0;
};

class Subject {
 public:
  void subscribe(Observer *observer) {
    std::lock_guard lock(mutex_);
    observers_.push_back(observer);
  }

  void unsubscribe(Observer *observer) {
    std::lock_guard lock(mutex_);
    observers_.erase(std::find(observers_.begin(), observers_.end(), observer));
  }

  void set(int value) {
    std::vector<Observer *> told;
    {
      std::lock_guard lock(mutex_);
      value_ = value;
      told = observers_;
    }
    for (Observer *observer : told) observer->changed(value);
  }

 private:
  std::mutex mutex_;
  int value_ = 0;
  std::vector<Observer *> observers_;
};

class Display : public Observer {
 public:
  void changed(int value) override {
    std::lock_guard lock(mutex_);
    assert(open_);  // BUG: called after it was closed
    shown_ = value;
  }

  void close() {
    std::lock_guard lock(mutex_);
    open_ = false;
  }

 private:
  std::mutex mutex_;
  bool open_ = true;
  int shown_ = 0;
};

int main() {
  Subject subject;
  Display display;
  subject.subscribe(&display);
  std::thread producer([&] { subject.set(7); });
  std::thread closer([&] {
    subject.unsubscribe(&display);
    display.close();
  });
  producer.join();
  closer.join();
  std::puts("told");
}
