#ifndef SFMAMBA_SERVER_REPOSITORY_CLASS_NAMES_H_
#define SFMAMBA_SERVER_REPOSITORY_CLASS_NAMES_H_

#include <string>
#include <vector>

#include "model/config.h"

namespace sfmamba::repository {

// Names for the classes of a model that brings no labels: of a detector of 80
// classes COCO's, of a segmenter of 150 ADE20K's, else "class_0", "class_1",
// ...
std::vector<std::string> ClassNames(model::VisionTask task, int classes);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_CLASS_NAMES_H_
