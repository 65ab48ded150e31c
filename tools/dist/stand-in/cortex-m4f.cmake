# A toolchain file, and an image of platform/cortex-m with libraries in it.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_FLAGS_INIT "$ENV{BOARD_FLAGS}")

# CONFIG_X=y of a file becomes a variable.
function(board_config file)
    file(STRINGS ${file} rows REGEX "^CONFIG_[A-Z0-9_]+=")
    foreach(row ${rows})
        string(REGEX MATCH "^(CONFIG_[A-Z0-9_]+)=(.*)$" found ${row})
        set(${CMAKE_MATCH_1} ${CMAKE_MATCH_2} PARENT_SCOPE)
    endforeach()
endfunction()

# Sources and libraries: image.elf.
function(board_image)
    cmake_parse_arguments(A "" "" "SOURCES;LIBRARIES" ${ARGN})
    set(board $ENV{BOARD_ROOT}/platform/cortex-m)
    add_executable(image.elf ${A_SOURCES} ${board}/startup.c ${board}/semihosting.c
        $ENV{BOARD_ROOT}/tools/dist/stand-in/console.c)
    target_include_directories(image.elf PRIVATE ${board})
    target_link_libraries(image.elf ${A_LIBRARIES})
    set_target_properties(image.elf PROPERTIES LINK_FLAGS "$ENV{BOARD_LINK}")
endfunction()
