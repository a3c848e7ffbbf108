#ifndef SFMAMBA_CLIENT_EVAL_CONFUSION_PICTURE_H_
#define SFMAMBA_CLIENT_EVAL_CONFUSION_PICTURE_H_

#include <map>
#include <string>

#include "client/eval/scores.h"
#include "client/picture/picture.h"

namespace sfmamba::client {

// At most this many classes are drawn. They are the classes with the most
// mistakes.
constexpr int kMaxDrawnClasses = 40;

// Draws a confusion matrix. It has a row for each true class and a column for
// each answered class, in the order of their numbers. A last column is added if
// other classes were answered. A cell shows what percentage of its row it
// contains, and is darker for larger percentages. `labels` are the names of
// classes. A class without a name shows its number.
Picture DrawConfusion(const Confusion& confusion,
                      const std::map<int, std::string>& labels);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_CONFUSION_PICTURE_H_
