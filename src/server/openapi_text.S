/* SPDX-License-Identifier: Apache-2.0 */
/* openapi.json as part of the program. */
	.section .rodata
	.global openapi_json
	.global openapi_json_end
openapi_json:
	.incbin OPENAPI_JSON
openapi_json_end:
	.byte 0
	.section .note.GNU-stack,"",%progbits
