/* cas_lock.c by hand: the same shared variables and steps. */
int shared;
bit word;
byte ended;
active proctype one() {
  int t;
  atomic { word == 0 -> word = 1 };
  t = shared;
  shared = t + 1;
  t = shared;
  shared = t + 1;
  word = 0;
  ended++
}
active proctype two() {
  int t;
  atomic { word == 0 -> word = 1 };
  t = shared;
  shared = t + 1;
  t = shared;
  shared = t + 1;
  word = 0;
  ended++
}
active proctype end() {
  ended == 2;
  assert(shared == 4)
}
