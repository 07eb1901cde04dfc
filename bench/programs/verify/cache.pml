/* cache.c by hand: the same shared variables and steps. */
int key, copy;
byte readers;
bit writer;
byte ended;
active proctype one() {
  atomic { !writer && readers == 0 -> writer = 1 };
  key = 5;
  copy = 5;
  writer = 0;
  ended++
}
active proctype two() {
  int k, c;
  atomic { !writer -> readers++ };
  k = key;
  c = copy;
  assert(k == c);
  readers--;
  ended++
}
active proctype end() {
  ended == 2;
  skip
}
