/* Sends each of its arguments as a line and waits for the line that answers it.
 *
 * usage: client PORT LINE...
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int main(int count, char **words) {
  if (count < 2) {
    fprintf(stderr, "usage: client PORT LINE...\n");
    return 2;
  }
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[1]))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int file = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(file, (struct sockaddr *)&address, sizeof address) != 0) {
    perror("connect");
    return 1;
  }
  FILE *server = fdopen(file, "r+");
  setvbuf(server, NULL, _IONBF, 0);
  for (int i = 2; i < count; i++) {
    char line[256];
    fprintf(server, "%s\n", words[i]);
    if (fgets(line, sizeof line, server) == NULL) return 1;
    fputs(line, stdout);
  }
  fclose(server);
  return 0;
}
