/* SPDX-License-Identifier: Apache-2.0 */
/* openapi.json as part of the program. */
	.section .rodata
	.global openapi_json
openapi_json:
	.incbin OPENAPI_JSON
	.byte 0
	.section .note.GNU-stack,"",%progbits
