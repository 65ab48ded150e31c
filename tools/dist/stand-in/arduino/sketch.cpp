/* A sketch runs its loop for ever; here once. */
void setup();
void loop();

int main() {
    setup();
    loop();
    return 0;
}
