// A record through a model that `mtan export` wrote, once a second: thousandths for each class, on the serial monitor.
#include <mtan.h>

#include "classify.h"

void setup() {
    Serial.begin(115200);
    Serial.println(classify_self_test() ? "self-test: passed" : "self-test: FAILED");
}

void loop() {
    mtan_real p[model_outputs];
    const mtan_status status = classify_patient(p);
    if (status != MTAN_OK) Serial.println(mtan_status_message(status));
    for (int i = 0; status == MTAN_OK && i < model_classes; i++) {
        Serial.print(model_class_names[i]);
        Serial.print(": ");
        Serial.println(classify_thousandths(p[i]));
    }
    delay(1000);
}
