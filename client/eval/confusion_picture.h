#ifndef SFMAMBA_CLIENT_EVAL_CONFUSION_PICTURE_H_
#define SFMAMBA_CLIENT_EVAL_CONFUSION_PICTURE_H_

#include <map>
#include <string>

#include "client/eval/scores.h"
#include "client/picture/picture.h"

namespace sfmamba::client {

// The most classes that are drawn; others have fewer mistakes.
constexpr int kMaxDrawnClasses = 40;

// A row for each right class and a column for each answered one, in the order
// of their numbers; the last column, if it is needed, is of answers that no
// other column is for. A cell is the darker, and says how many hundredths, the
// more of its row it has. `labels` are the classes' names; a class without one
// shows its number.
Picture DrawConfusion(const Confusion& confusion,
                      const std::map<int, std::string>& labels);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_CONFUSION_PICTURE_H_
