/* account_pair.c by hand: the same shared variables and steps. */
int x = 10, y = 10;
bit m_x, m_y;
inline lock(m) { atomic { m == 0 -> m = 1 } }
inline unlock(m) { m = 0 }
byte ended;
active proctype one() {
  int t;
  lock(m_x);
  t = x;
  x = t - 3;
  unlock(m_x);
  lock(m_y);
  t = y;
  y = t + 3;
  unlock(m_y);
  ended++
}
active proctype two() {
  int t;
  lock(m_y);
  t = y;
  y = t - 4;
  unlock(m_y);
  lock(m_x);
  t = x;
  x = t + 4;
  unlock(m_x);
  ended++
}
active proctype end() {
  ended == 2;
  assert(x == 11 && y == 9)
}
