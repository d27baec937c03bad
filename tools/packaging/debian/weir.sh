#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
exec /usr/lib/weir/bin/python -P -m weir "$@"
